"""The routes, one file for each subject. `/api/v1` stands before all of them."""
