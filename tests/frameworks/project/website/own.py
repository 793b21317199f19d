"""An App of the project's own, for settings that name one."""

import duetime as dt

app = dt.App("sqlite:///own.db", tenant="shop")
