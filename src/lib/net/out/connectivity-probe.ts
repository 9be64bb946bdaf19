/**
 * Connects to a service hop by hop, on sockets of its own. `fetch` cannot say which hop is silent, or who signed the
 * certificate that was shown. The service itself is sent no request.
 */
import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { withTimeLimit } from "../time-limit";
import { proxyFor } from "./proxy";

interface ProbeResult {
  /** How far the connection gets, and which hop is silent or refuses it: a sentence without its full stop. */
  message: string;
  /** The issuer of the certificate, where one was shown: `Example company root`. */
  signer?: string;
}

/** @param timeoutMs For each hop. */
export async function probeConnection(address: string, timeoutMs: number): Promise<ProbeResult> {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  const proxy = proxyFor(address);
  const next = proxy
    ? { host: proxy.host, port: proxy.port, is: `the proxy ${proxy.address}` }
    : { host, port, is: host };
  if (proxy?.fault) return { message: `${proxy.variable} ${proxy.fault}` };
  let socket: Socket | undefined;
  try {
    await orSilence(lookup(next.host), timeoutMs, `the name ${next.host} is looked up without an answer`);
    socket = await open(next.host, next.port, timeoutMs, `${next.is} does not answer a connection`);
    if (proxy) {
      if (proxy.address.startsWith("https:")) socket = (await secure(socket, next.host, timeoutMs, next.is)).socket;
      const status = await tunnel(
        socket,
        `${url.hostname}:${port}`,
        timeoutMs,
        `${next.is} takes connections and does not answer`,
      );
      // `fetch` signs in to the proxy and would get through.
      if (status === 407 && proxy.signsIn) return { message: `${next.is} answers, and what is behind it is silent` };
      if (status !== 200) return { message: `${next.is} answers with status ${status}` };
    }
    if (url.protocol !== "https:") return { message: `${host} takes connections and does not answer` };
    const { signer } = await secure(socket, host, timeoutMs, proxy ? `${host}, behind ${next.is},` : host);
    return { message: `${host} can be reached and does not answer`, signer };
  } catch (thrown) {
    return { message: thrown instanceof Error ? thrown.message : String(thrown) };
  } finally {
    socket?.destroy();
  }
}

/** @param silence The error message when the hop does not answer in time. */
const orSilence = <T>(work: Promise<T>, timeoutMs: number, silence: string): Promise<T> =>
  withTimeLimit(work, timeoutMs, () => {
    throw new Error(silence);
  });

function open(host: string, port: number, timeoutMs: number, silence: string): Promise<Socket> {
  const socket = connect(port, host);
  const opened = new Promise<Socket>((resolve, reject) => {
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
  return orSilence(opened, timeoutMs, silence).catch((thrown) => {
    socket.destroy();
    throw thrown;
  });
}

/** The status with which the proxy answers. No credentials are sent: a proxy that requires them still answers. */
function tunnel(socket: Socket, target: string, timeoutMs: number, silence: string): Promise<number> {
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`);
  const answered = new Promise<number>((resolve, reject) => {
    socket.once("data", (data) => resolve(Number(/^HTTP\/1\.\d (\d{3})/.exec(data.toString("latin1"))?.[1] ?? 0)));
    socket.once("end", () => reject(new Error(`${silence}: it hangs up`)));
    socket.once("error", reject);
  });
  return orSilence(answered, timeoutMs, silence);
}

/** A TLS handshake that accepts any certificate, to see who answers. Nothing is sent after it. */
function secure(socket: Socket, host: string, timeoutMs: number, is: string) {
  const handshake = new Promise<{ socket: Socket; signer?: string }>((resolve, reject) => {
    const inside = connectTls({ socket, servername: isIP(host) ? "" : host, rejectUnauthorized: false }, () => {
      const issuer = inside.getPeerCertificate()?.issuer;
      const name = [issuer?.CN ?? issuer?.O].flat()[0];
      resolve({ socket: inside, signer: name?.replace(/[^ -~]/g, "").slice(0, 80) });
    });
    inside.once("error", reject);
  });
  return orSilence(handshake, timeoutMs, `${is} takes connections and does not begin TLS`);
}
