"""What guards say of sizes: which are equal, how small they can be, and which guards the others imply."""
