from django.urls import path
from shop import views

urlpatterns = [path("orders", views.order), path("orders-later", views.order_later)]
