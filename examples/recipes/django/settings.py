import os

SECRET_KEY = os.environ.get("SECRET_KEY", "only for trying it")
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "payments"
MIDDLEWARE = ["payments.client_address"]  # first, before what asks for the address
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
