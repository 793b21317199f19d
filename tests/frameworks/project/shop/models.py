from django.db import models


class Order(models.Model):
    billed_by = models.CharField(max_length=20, default="")
