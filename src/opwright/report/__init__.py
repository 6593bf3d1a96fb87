"""Tables for people, made from the JSON of results and from nothing else; and how results show themselves."""
