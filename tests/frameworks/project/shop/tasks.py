"""Found by itself: every installed app may have tasks."""

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
