import json

from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt


def client_address(get_response):
    """REMOTE_ADDR is hapax's; the last address in the header is the one that hapax saw."""
    def middleware(request):
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", request.META["REMOTE_ADDR"])
        request.META["REMOTE_ADDR"] = forwarded.rpartition(",")[2].strip()
        return get_response(request)
    return middleware


@csrf_exempt  # callers send Authorization, not a cookie
def pay(request):
    amount = json.loads(request.body)["amount"]
    line = (request.headers["Idempotency-Key"], request.META["REMOTE_ADDR"], request.scheme, str(amount))
    with open("payments.log", "a") as log:  # here the money moves
        log.write("\t".join(line) + "\n")
    return JsonResponse({"amount": amount, "paid": True}, status=201)


urlpatterns = [path("payments", pay)]
application = get_wsgi_application()
