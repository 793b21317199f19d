"""Orders with their bills: both are there or neither."""

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from shop.models import Order
from shop.tasks import abill, bill

from duetime.frameworks.django import asubmit, submit


@transaction.atomic
def order(request: HttpRequest) -> JsonResponse:
    made = Order.objects.create()
    job = submit(bill, order=made.pk)
    if "fail" in request.GET:
        raise RuntimeError("after both were written")
    return JsonResponse({"order": made.pk, "job": str(job.id)})


async def order_later(request: HttpRequest) -> JsonResponse:
    made = await Order.objects.acreate()
    return JsonResponse({"order": made.pk, "job": str((await asubmit(abill, order=made.pk)).id)})
