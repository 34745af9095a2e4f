// The handler that the Restate server calls: the effect is one durable step, so
// that a handler that is run again does not repeat it. Restate's ingress takes the
// Idempotency-Key itself.
import '../common/with-resolvers.js';
import { execute } from '../common/service.js';

const restate = await import('@restatedev/restate-sdk');

const payments = restate.service({
  name: 'payments',
  handlers: {
    pay: async (context, order) => context.run('pay', async () => {
      const answer = await execute('/payments', Buffer.from(JSON.stringify(order)));
      return JSON.parse(answer.body);
    }),
    large: async (context, order) => context.run('large', async () => {
      const answer = await execute('/large', Buffer.from(JSON.stringify(order)));
      return JSON.parse(answer.body);
    }),
  },
});

await restate.serve({ services: [payments], port: Number(process.env.PORT) });
console.log('ready');
process.on('SIGTERM', () => process.exit(0));
