// The outside: the payment provider of ../payments, asked once; our caller's retry asks again.
const port = process.argv[4] ?? 9100;

// The provider's id of what it did; null: declined, which is final. Without an answer it throws.
export async function ask({ operation, proof, amount, currency }, order) {
  const answer = await fetch(`http://127.0.0.1:${port}/${order}s`, {
    method: "POST",
    headers: { "Idempotency-Key": `"${operation}.${order}"` },
    body: JSON.stringify({ about: proof, amount, currency }),
    signal: AbortSignal.timeout(5000),
  });
  if (answer.status === 402) return null;
  if (answer.status !== 201) throw new Error(`the provider answered ${answer.status}`);
  return (await answer.json()).id;
}
