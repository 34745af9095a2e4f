// Node 20, which Debian and many servers still run, lacks what the SDK takes for granted.
Promise.withResolvers ??= function withResolvers() {
  let resolve;
  let reject;
  const promise = new this((one, two) => { resolve = one; reject = two; });
  return { promise, resolve, reject };
};
