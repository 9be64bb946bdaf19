/** What the WebSockets of all clients remember together is limited, and all of them end with the process. */
import { expect, test } from "bun:test";
import { type ClientSocket, openClientSockets } from "../../src/net/client-sockets";

function socketNamed(name: string, log: string[]): ClientSocket {
  return { retire: () => void log.push(`${name} retires`), forget: () => void log.push(`${name} forgets`) };
}

test("the one that was used least recently forgets first, and one that has ended counts no longer", () => {
  const log: string[] = [];
  const sockets = openClientSockets({ memory: 100 });
  const [a, b, c] = ["a", "b", "c"].map((name) => socketNamed(name, log)) as [ClientSocket, ClientSocket, ClientSocket];
  for (const socket of [a, b, c]) sockets.add(socket);
  sockets.remembers(a, 40);
  sockets.remembers(b, 40);
  sockets.remembers(a, 50);
  expect(log).toEqual([]);
  sockets.remembers(c, 30);
  expect(log).toEqual(["b forgets"]);
  sockets.remove(a);
  sockets.remembers(b, 60);
  expect(log).toEqual(["b forgets"]);
  sockets.remembers(c, 101);
  expect(log).toEqual(["b forgets", "b forgets", "c forgets"]);
});

test("a drain retires those that are open and those that open late; no more may be opened", () => {
  const log: string[] = [];
  const sockets = openClientSockets({ sockets: 2 });
  const a = socketNamed("a", log);
  sockets.add(a);
  expect(sockets.isFull).toBe(false);
  sockets.add(socketNamed("b", log));
  expect(sockets.isFull).toBe(true);
  sockets.remove(a);
  expect(sockets.isFull).toBe(false);
  sockets.drain();
  sockets.add(socketNamed("c", log));
  expect(log).toEqual(["b retires", "c retires"]);
  expect(sockets.isFull).toBe(true);
});
