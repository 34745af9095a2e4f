const express = require("express");
const { appendFileSync } = require("node:fs");

const app = express();
app.set("trust proxy", 1); // one proxy, hapax: req.ip is the address that hapax saw
app.use(express.json());

app.post("/payments", (req, res) => {
  const line = [req.get("Idempotency-Key"), req.ip, req.protocol, req.body.amount];
  appendFileSync("payments.log", line.join("\t") + "\n"); // here the money moves
  res.status(201).json({ amount: req.body.amount, paid: true });
});

app.listen(9000, "127.0.0.1");
