/** Below the ports that systems give to connections and to listeners of port 0, none of which takes it in the meantime. */
const lowest = 20_000;
const highest = 32_000;

/** A port of 127.0.0.1 that nobody has. */
export function freePort(): number {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
