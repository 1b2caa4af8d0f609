-- A small shop: its tables get their keys from snowflake_nextval().

CREATE EXTENSION snowflake;

CREATE TABLE customers (
    id   bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    name text NOT NULL,
    city text NOT NULL
);

CREATE TABLE products (
    id    bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    name  text NOT NULL,
    price numeric(8, 2) NOT NULL
);

CREATE TABLE orders (
    id          bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    customer_id bigint NOT NULL REFERENCES customers,
    product_id  bigint NOT NULL REFERENCES products,
    quantity    int NOT NULL
);

-- What happened in a visit, and the session that noted it, in the order of noting.
CREATE TABLE events (
    id          bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    customer_id bigint NOT NULL REFERENCES customers,
    kind        text NOT NULL,
    session     int NOT NULL DEFAULT pg_backend_pid(),
    noted       bigint NOT NULL GENERATED ALWAYS AS IDENTITY
);

-- IDs drawn as fast as they come, and the session that drew them.
CREATE UNLOGGED TABLE drawn (
    id      bigint NOT NULL,
    session int NOT NULL,
    nth     int NOT NULL
);

INSERT INTO products (name, price) VALUES
    ('Kettle', 39.90), ('Teapot', 24.50), ('Tea towel', 7.20), ('Breakfast tea, 250 g', 5.80),
    ('Green tea, 100 g', 8.40), ('Coffee grinder', 64.00), ('Espresso beans, 1 kg', 18.90),
    ('Milk jug', 12.00), ('Sugar bowl', 11.50), ('Cup and saucer', 9.80);

-- Every first name meets every last name once, in a different city each time.
INSERT INTO customers (name, city)
SELECT first_name || ' ' || last_name,
       (ARRAY['Aarhus', 'Bologna', 'Cork', 'Dresden', 'Graz', 'Lyon', 'Porto'])
           [1 + (f.nth * 5 + l.nth) % 7]
FROM unnest(ARRAY['Ada', 'Amira', 'Ben', 'Chidi', 'Dana', 'Elif', 'Emil', 'Hana', 'Igor', 'Jun',
                  'Lena', 'Luis', 'Maya', 'Nils', 'Olga', 'Priya', 'Rosa', 'Sami', 'Tom', 'Yara'])
         WITH ORDINALITY AS f (first_name, nth),
     unnest(ARRAY['Abe', 'Bauer', 'Costa', 'Dubois', 'Eze', 'Fischer', 'Garcia', 'Haddad', 'Ito',
                  'Jensen', 'Kaya', 'Larsen', 'Moreau', 'Novak', 'Okafor', 'Patel', 'Rossi',
                  'Silva', 'Tanaka', 'Weber'])
         WITH ORDINALITY AS l (last_name, nth)
ORDER BY f.nth, l.nth;
