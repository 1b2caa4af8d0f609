"""Django: models that know of nothing but an automatic key, before and after the conversion."""
import io
import os
import sys

import django
from django.conf import settings
from django.core import serializers
from django.core.management import call_command
from django.db import connection, transaction

from report import are_beyond_floats, are_distinct_and_rise, done, keys, ok

settings.configure(
    INSTALLED_APPS=["shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"],
        "USER": os.environ["PGUSER"], "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"]}},
)
django.setup()

from shop.models import Line, Order  # noqa: E402, needs the settings


def pairs(objects):
    return [(each.name, each.pk) for each in objects]


def before():
    call_command("migrate", run_syncdb=True, verbosity=0)
    old = [Order.objects.create(name=f"old-{n}") for n in range(3)]
    for each in old:
        each.lines.create(name=f"{each.name}-line")
    keys("shop_order", pairs(old))
    ok([each.pk for each in old] == [1, 2, 3], "the model draws on a sequence")


def after():
    with transaction.atomic():
        order = Order.objects.create(name="single")
        lines = [order.lines.create(name=f"single-line-{n}") for n in range(3)]
    keys("shop_order", pairs([order]))
    keys("shop_line", pairs(lines))
    ok(order.pk > 2 ** 53, "create() gives the key")

    many = Order.objects.bulk_create([Order(name=f"many-{n}") for n in range(2000)], batch_size=500)
    keys("shop_order", pairs(many))
    ids = [each.pk for each in many]
    ok(are_distinct_and_rise(ids), "bulk_create() gives keys in the order of the objects")
    ok(are_beyond_floats(ids), "keys are exact where a float would not be")

    ok(Order.objects.get(pk=order.pk).name == "single", "an object is read by its key")
    ok([line.name for line in Line.objects.filter(order=order).order_by("pk")]
       == [f"single-line-{n}" for n in range(3)], "and what refers to it")
    ok([each.lines.get().name for each in Order.objects.filter(name__startswith="old-").order_by("pk")]
       == [f"old-{n}-line" for n in range(3)], "rows from before the conversion are read as ever")

    # what loaddata and tests do
    text = serializers.serialize("json", [order])
    order.name = "changed"
    order.save()
    for each in serializers.deserialize("json", text):
        each.save()
    ok(Order.objects.get(pk=order.pk).name == "single", "an object is saved to JSON and loaded under its key")
    resets = io.StringIO()
    call_command("sqlsequencereset", "shop", stdout=resets, no_color=True)
    with connection.cursor() as cursor:
        cursor.execute(resets.getvalue())
    following = Order.objects.create(name="following")
    keys("shop_order", pairs([following]))
    ok(following.pk > max(ids), "and sqlsequencereset does no harm")


{"before": before, "after": after}[sys.argv[1]]()
done()
