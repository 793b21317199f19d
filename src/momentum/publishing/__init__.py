"""Publishing: a post's files are prepared, its intent is stored, it is published once, and doubt is shown.

`publisher` is for the API side. `tasks` has the Duetime tasks, which run the steps of the other modules.
"""
