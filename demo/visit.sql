-- One visit of a customer to the shop, for pgbench.
\set customer random(0, 399)
\set product random(0, 9)
\set quantity random_zipfian(1, 6, 2)
BEGIN;
SELECT id AS customer_id FROM customers ORDER BY id OFFSET :customer LIMIT 1 \gset
SELECT id AS product_id FROM products ORDER BY id OFFSET :product LIMIT 1 \gset
INSERT INTO events (customer_id, kind)
    VALUES (:customer_id, 'search'), (:customer_id, 'view'), (:customer_id, 'add to cart');
INSERT INTO orders (customer_id, product_id, quantity)
    VALUES (:customer_id, :product_id, :quantity);
INSERT INTO events (customer_id, kind) VALUES (:customer_id, 'order');
COMMIT;
