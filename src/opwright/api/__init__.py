"""What a user types: `@opwright.operator`, and the class that it makes."""
