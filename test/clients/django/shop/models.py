"""Models as anyone writes them: Django makes their keys bigserial (from 4.1 on identity) columns."""
from django.db import models


class Order(models.Model):
    name = models.TextField()


class Line(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    name = models.TextField()
