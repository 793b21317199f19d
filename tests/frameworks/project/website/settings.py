"""A small shop. The test names its database, what Duetime is told and whether it is there, in the
environment."""

import json
import os

SECRET_KEY = "of-no-value"
ALLOWED_HOSTS = ["testserver"]
USE_TZ = True
DATABASES = {"default": json.loads(os.environ["SHOP_DATABASE"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = os.environ.get("SHOP_APPS", "shop,duetime.frameworks.django").split(",")
TIME_ZONE = "UTC"
ROOT_URLCONF = "website.urls"
if "SHOP_DUETIME" in os.environ:
    DUETIME = json.loads(os.environ["SHOP_DUETIME"])
