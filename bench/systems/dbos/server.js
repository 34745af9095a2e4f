// A DBOS workflow with the key as its id: the same id again gives the result of the
// first. The effect is one step of it.
import '../common/with-resolvers.js';
import { execute, refusals, serve } from '../common/service.js';

const { DBOS } = await import('@dbos-inc/dbos-sdk');

async function pay(path, body) {
  return DBOS.runStep(async () => {
    const answer = await execute(path, Buffer.from(body));
    return { ...answer, body: answer.body.toString() };
  }, { name: 'execute' });
}
const workflow = DBOS.registerWorkflow(pay, { name: 'pay' });

DBOS.setConfig({
  name: 'bench', systemDatabaseUrl: process.env.DATABASE,
  systemDatabasePoolSize: Number(process.env.POOL), logLevel: 'error',
});
await DBOS.launch();

serve(async ({ key, path, body }) => {
  if (key === undefined) return refusals.missing;
  const handle = await DBOS.startWorkflow(workflow, { workflowID: key })(path, body.toString());
  return handle.getResult();
});
