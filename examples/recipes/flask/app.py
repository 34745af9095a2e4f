from flask import Flask, jsonify, request
from werkzeug.middleware.proxy_fix import ProxyFix

app = Flask(__name__)
# One proxy, hapax: remote_addr is the address that hapax saw.
app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1, x_host=1)


@app.post("/payments")
def pay():
    amount = request.get_json()["amount"]
    line = (request.headers["Idempotency-Key"], request.remote_addr, request.scheme, str(amount))
    with open("payments.log", "a") as log:  # here the money moves
        log.write("\t".join(line) + "\n")
    return jsonify(amount=amount, paid=True), 201
