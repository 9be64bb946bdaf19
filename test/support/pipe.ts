/** `bun pipe.ts <socket> <host> <port>`: whoever connects to the socket file speaks to the host, from this process's network. */
import { connect, createServer } from "node:net";

const [socket, host, port] = process.argv.slice(2);
const parent = process.ppid;

createServer((near) => {
  const far = connect(Number(port), host);
  near.pipe(far).pipe(near);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const)
    one.on("error", () => other.destroy());
}).listen(socket);

// What it was started for is gone.
setInterval(() => process.ppid === parent || process.exit(), 200);
