/** Rows: what the WebSockets of all clients remember together is limited, and all of them end with the process. */
import { expect, test } from "bun:test";
import { type ClientSocket, openClientSockets } from "../../../src/lib/net/in/client-sockets";

function socketNamed(name: string, log: string[], member: string | null = null): ClientSocket {
  return { member, retire: () => void log.push(`${name} retires`), forget: () => void log.push(`${name} forgets`) };
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
  expect(sockets.isFullFor(null)).toBe(false);
  sockets.add(socketNamed("b", log));
  expect(sockets.isFullFor(null)).toBe(true);
  sockets.remove(a);
  expect(sockets.isFullFor(null)).toBe(false);
  sockets.drain();
  sockets.add(socketNamed("c", log));
  expect(log).toEqual(["b retires", "c retires"]);
  expect(sockets.isFullFor(null)).toBe(true);
});

test("a member has a share of them, and leaves the rest to others", () => {
  const sockets = openClientSockets({ sockets: 4, socketsOfMember: 2 });
  const own = ["a", "b"].map((name) => socketNamed(name, [], "eve"));
  for (const socket of own) {
    expect(sockets.isFullFor("eve")).toBe(false);
    sockets.add(socket);
  }
  expect([sockets.isFullFor("eve"), sockets.isFullFor("anna"), sockets.isFullFor(null)]).toEqual([true, false, false]);
  sockets.remove(own[0]!);
  expect(sockets.isFullFor("eve")).toBe(false);
});
