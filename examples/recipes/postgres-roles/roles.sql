-- Whoever migrates owns the schema; gateways and applications have only the rights that
-- `hapax migrate` grants to the three roles without a login, if they are there before it.
CREATE ROLE hapax_gateway NOLOGIN;
CREATE ROLE hapax_application NOLOGIN;
CREATE ROLE hapax_settler NOLOGIN;

CREATE ROLE payments_owner LOGIN;                             -- runs `hapax migrate`, and no service
CREATE ROLE payments_gateway LOGIN IN ROLE hapax_gateway;     -- hapax serve, work, keys, jobs
CREATE ROLE shop LOGIN IN ROLE hapax_application;             -- your service: hapax.complete and others

CREATE DATABASE payments OWNER payments_owner ENCODING 'UTF8' TEMPLATE template0;
