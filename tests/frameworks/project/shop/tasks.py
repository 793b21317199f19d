"""Found by itself: every installed app may have tasks."""

import threading
import time

from django.db import connection
from shop.models import Order

from duetime.frameworks.django import app


@app.task("shop.bill")
def bill(order: int) -> str:
    Order.objects.filter(pk=order).update(billed_by="plain")
    return Order.objects.get(pk=order).billed_by


@app.task("shop.abill")
async def abill(order: int) -> str:
    await Order.objects.filter(pk=order).aupdate(billed_by="async")
    return (await Order.objects.aget(pk=order)).billed_by


@app.task("shop.count", isolate=True)
def count() -> int:
    """In a process of its own, which has to be made ready for models first."""
    return Order.objects.count()


@app.task("shop.connections")
def connections() -> list[int]:
    """The connections of Django on PostgreSQL, and the threads of tasks, each of which has one."""
    Order.objects.count()
    time.sleep(0.1)  # so that many run at the same time
    seen = 0
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND application_name = ''"
            )
            [seen] = cursor.fetchone()
    return [seen, sum(thread.name.startswith("duetime-task") for thread in threading.enumerate())]
