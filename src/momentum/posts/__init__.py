"""The rules of posts: what may be saved, when it is published, and what people see of it."""
