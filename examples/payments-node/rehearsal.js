// Rehearsing accidents: PAYMENTS_BREAK=kill:asked:authorised dies, as by kill -9, when the
// provider has answered and nothing is committed; kill:committed:authorised right after the
// commit. stop:… stands still until SIGCONT. The last phase is called paid.
export function rehearse(moment, phase) {
  const [how, when, where] = (process.env.PAYMENTS_BREAK ?? "").split(":");
  if (when === moment && where === phase) process.kill(process.pid, how === "stop" ? "SIGSTOP" : "SIGKILL");
}
