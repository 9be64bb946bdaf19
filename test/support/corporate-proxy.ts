/**
 * A company's network on loopback: an HTTP proxy that opens tunnels, and behind it a server that speaks TLS with a
 * certificate of the company's own (`tls/`, made once, valid for a century; the root's key was thrown away).
 */
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";

const file = (name: string) => join(import.meta.dir, "tls", `${name}.pem`);

/** The root certificate whose holder signs everything behind the proxy. */
export const companyRoot = file("company-root");

/** The certificate of a proxy that speaks TLS itself, which nobody has signed. */
export const proxyCertificate = file("proxy");

/** For github.test, api.github.test and copilot.test; for another name; for copilot.test, until 2021. */
type Certificate = "upstream" | "elsewhere" | "expired";

interface Company extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`, or with https. */
  url: string;
  port: number;
  /** The first line of each request to the proxy, and how it signed in. */
  asked: { line: string; signIn?: string }[];
  /** What the proxy says to the next requests for a tunnel, or that it says nothing; a tunnel when undefined. */
  answer: string | "silent" | undefined;
  /** Where tunnels lead; a TLS server of its own when undefined. */
  port443: number | undefined;
}

interface CompanyOptions {
  certificate?: Certificate;
  /** Whether the proxy itself speaks TLS. */
  isSecure?: boolean;
  serve?: (request: Request) => Response | Promise<Response>;
}

export async function startCompany({
  certificate = "upstream",
  serve,
  isSecure = false,
}: CompanyOptions = {}): Promise<Company> {
  const pem = readFileSync(file(certificate), "utf8");
  const behind = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: pem, cert: pem },
    fetch: serve ?? (() => new Response("from behind the proxy")),
  });
  const sockets = new Set<Socket>();
  const meet = (socket: Socket) => {
    sockets.add(socket.on("error", () => {}).on("close", () => sockets.delete(socket)));
    socket.once("data", (data) => take(socket, data.toString()));
  };
  const own = isSecure ? readFileSync(proxyCertificate, "utf8") : "";
  const proxy = isSecure ? createTlsServer({ key: own, cert: own }, meet) : createServer(meet);
  await new Promise<void>((listening) => proxy.listen(0, "127.0.0.1", listening));
  const { port } = proxy.address() as { port: number };
  const company: Company = {
    url: `${isSecure ? "https" : "http"}://127.0.0.1:${port}`,
    port,
    asked: [],
    answer: undefined,
    port443: undefined,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([new Promise((closed) => proxy.close(closed)), behind.stop(true)]);
    },
  };

  function take(socket: Socket, head: string): void {
    const [line = ""] = head.split("\r\n");
    company.asked.push({ line, signIn: /^proxy-authorization: (.*)\r$/im.exec(head)?.[1] });
    if (company.answer === "silent") return;
    if (company.answer !== undefined) return void socket.end(company.answer);
    const inside = connect(company.port443 ?? behind.port!, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(inside).pipe(socket);
    });
    sockets.add(inside.on("error", () => socket.destroy()).on("close", () => sockets.delete(inside)));
  }
  return company;
}

/** What a proxy answers that declines. */
export const declining = (status: string, header = "") =>
  `HTTP/1.1 ${status}\r\n${header && `${header}\r\n`}content-length: 0\r\nconnection: close\r\n\r\n`;
