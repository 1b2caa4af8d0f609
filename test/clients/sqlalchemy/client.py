"""SQLAlchemy: a model that knows of nothing but an identity column, before and after the conversion."""
import sys

from sqlalchemy import BigInteger, Column, ForeignKey, Identity, Text, create_engine, insert, select
from sqlalchemy.orm import Session, declarative_base, relationship

from report import are_beyond_floats, are_distinct_and_rise, done, keys, ok

Base = declarative_base()


class Order(Base):
    __tablename__ = "orders"
    id = Column(BigInteger, Identity(), primary_key=True)
    name = Column(Text, nullable=False)
    lines = relationship("Line", back_populates="order", order_by="Line.id")


class Line(Base):
    __tablename__ = "lines"
    id = Column(BigInteger, Identity(), primary_key=True)
    order_id = Column(BigInteger, ForeignKey("orders.id"), nullable=False)
    name = Column(Text, nullable=False)
    order = relationship("Order", back_populates="lines")


engine = create_engine("postgresql+psycopg2://")


def pairs(objects):
    return [(each.name, each.id) for each in objects]


def before(session):
    Base.metadata.create_all(engine)
    old = [Order(name=f"old-{n}", lines=[Line(name=f"old-{n}-line")]) for n in range(3)]
    session.add_all(old)
    session.commit()
    keys("orders", pairs(old))
    ok(sorted(each.id for each in old) == [1, 2, 3], "the model draws on an identity column")


def after(session):
    order = Order(name="single", lines=[Line(name=f"single-line-{n}") for n in range(3)])
    session.add(order)
    session.commit()
    keys("orders", pairs([order]))
    keys("lines", pairs(order.lines))
    ok(len(order.lines) == 3 and {line.order_id for line in order.lines} == {order.id},
       "one flush inserts an order and its lines, which refer to its key")

    many = [Order(name=f"many-{n}") for n in range(2000)]
    session.add_all(many)
    session.commit()
    keys("orders", pairs(many))
    ids = [each.id for each in many]
    ok(are_distinct_and_rise(ids), "add_all gives keys in the order of the objects")
    ok(are_beyond_floats(ids), "keys are exact where a float would not be")

    rows = session.execute(
        insert(Order).returning(Order.name, Order.id).values([{"name": f"core-{n}"} for n in range(100)])).all()
    session.commit()
    keys("orders", rows)
    ok(are_distinct_and_rise([key for _, key in rows]), "an INSERT of many rows returns their keys")

    key = order.id
    session.expunge_all()
    ok(session.get(Order, key).name == "single", "an object is read by its key")
    ok([line.name for line in session.get(Order, key).lines] == [f"single-line-{n}" for n in range(3)],
       "and what refers to it")
    old = session.scalars(select(Order).where(Order.name.like("old-%")).order_by(Order.id)).all()
    ok([each.lines[0].name for each in old] == [f"old-{n}-line" for n in range(3)],
       "rows from before the conversion are read as ever")


with Session(engine) as session:
    {"before": before, "after": after}[sys.argv[1]](session)
done()
