const Stripe = require("stripe");

const stripe = new Stripe(process.env.STRIPE_KEY ?? "sk_test_recipe", {
  protocol: "http", host: "127.0.0.1", port: 8080, // hapax
  maxNetworkRetries: 3,
});
const [order, amount] = process.argv.slice(2);

stripe.paymentIntents
  .create({ amount, currency: "eur" }, { idempotencyKey: `order-${order}` })
  .then((paid) => console.log(JSON.stringify(paid)))
  .catch((error) => {
    console.log(`${error.type}: ${error.message}`);
    process.exitCode = 1;
  });
