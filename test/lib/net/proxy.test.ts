/** Scenario: which proxy a call goes through: by the rules of Bun's own `fetch`, which is asked beside. */
import { expect, test } from "bun:test";
import { ignoredProxy, proxyFor, sparedBy } from "../../../src/lib/net/out/proxy";
import { clearProxyVariables } from "../../support/proxy-variables";
import { startRaw } from "../../support/raw-socket";
import { until } from "../../support/until";

const clear = clearProxyVariables();

/** Variables in which PROXY stands for the proxy's own `host:port`; the address, whose host is made unique; and whether it is asked. */
type Rule = [variables: Record<string, string>, address: string, asked: boolean];
const rules: Rule[] = [
  [{ HTTPS_PROXY: "http://PROXY" }, "https://HOST.invalid/", true],
  [{ https_proxy: "http://PROXY" }, "https://HOST.invalid/", true],
  [{ HTTPS_PROXY: "PROXY" }, "https://HOST.invalid/", true],
  [{ HTTPS_PROXY: "http://PROXY/path" }, "https://HOST.invalid/", true],
  [{ HTTPS_PROXY: "http://user:pass@PROXY" }, "https://HOST.invalid/", true],
  [{ HTTP_PROXY: "http://PROXY" }, "https://HOST.invalid/", false],
  [{ HTTPS_PROXY: "http://PROXY" }, "http://HOST.invalid/", false],
  [{ HTTP_PROXY: "http://PROXY" }, "http://HOST.invalid/", true],
  [{ http_proxy: "http://PROXY" }, "http://HOST.invalid/", true],
  [{ ALL_PROXY: "http://PROXY" }, "https://HOST.invalid/", true],
  [{ all_proxy: "http://PROXY" }, "http://HOST.invalid/", true],
  [{ ALL_PROXY: "http://127.0.0.1:1", HTTPS_PROXY: "http://PROXY" }, "https://HOST.invalid/", true],
  [{ ALL_PROXY: "http://PROXY", HTTPS_PROXY: "http://127.0.0.1:1" }, "https://HOST.invalid/", false],
  [{ https_proxy: "http://PROXY", HTTPS_PROXY: "http://127.0.0.1:1" }, "https://HOST.invalid/", true],
  [{ https_proxy: "http://127.0.0.1:1", HTTPS_PROXY: "http://PROXY" }, "https://HOST.invalid/", false],
  [{ all_proxy: "http://PROXY", ALL_PROXY: "http://127.0.0.1:1" }, "https://HOST.invalid/", true],
  [{ https_proxy: "", HTTPS_PROXY: "http://PROXY" }, "https://HOST.invalid/", true],
  [{ HTTPS_PROXY: '""', ALL_PROXY: "http://PROXY" }, "https://HOST.invalid/", true],
  [{ ALL_PROXY: "socks5://PROXY" }, "https://HOST.invalid/", false],
  ...(
    [
      ["HOST.invalid", false],
      [".HOST.invalid", false],
      ["*.HOST.invalid", false],
      [".invalid", false],
      ["invalid", false],
      ["*", false],
      ["*.invalid", false],
      ["OST.invalid", true],
      ["*HOST.invalid", true],
      ["x.HOST.invalid", true],
      ["HOST.INVALID", false],
      [" HOST.invalid ", false],
      ["other.invalid,HOST.invalid", false],
      ["other.invalid HOST.invalid", false],
      ["other.invalid, HOST.invalid,", false],
      [",,HOST.invalid", false],
      ["other,,*", false],
      ["HOST.invalid:443", false],
      ["HOST.invalid:8443", true],
      ["HOST.invalid:", true],
      ["HOST.invalid.", false],
      ["https://HOST.invalid", true],
      ["", true],
      [",", true],
    ] as const
  ).map(([spared, asked]): Rule => [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: spared }, "https://HOST.invalid/", asked]),
  [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: "HOST.invalid:8443" }, "https://HOST.invalid:8443/", false],
  [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: "HOST.invalid", no_proxy: "other.invalid" }, "https://HOST.invalid/", true],
  [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: "HOST.invalid", no_proxy: "" }, "https://HOST.invalid/", false],
  [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: "127.0.0.0/8" }, "https://128.0.0.1:1/", true],
  [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: "10.0.0.0/33" }, "https://10.0.0.1:1/", true],
  [{ HTTPS_PROXY: "http://PROXY", NO_PROXY: "2001:db8::/32" }, "https://[2001:db9::1]:1/", true],
];

test("the same variables and exceptions count as for Bun's own fetch, in both cases", async () => {
  const asked = new Set<string>();
  await using proxy = await startRaw((socket, head) => {
    asked.add(/host: ([^\r]+)/i.exec(head)?.[1] ?? "");
    socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
  });
  const place = new URL(proxy.url).host;
  const hosts: string[] = [];
  const calls: Promise<unknown>[] = [];
  const ours: boolean[] = [];
  const controller = new AbortController();
  for (const [at, [variables, address]] of rules.entries()) {
    const fill = (text: string) => text.replaceAll("PROXY", place).replace("HOST", `h${at}`);
    clear();
    for (const [name, value] of Object.entries(variables)) process.env[name] = fill(value).replace("OST.", `${at}.`);
    const url = fill(address);
    hosts.push(new URL(url).host);
    ours.push(proxyFor(url)?.port === Number(place.split(":")[1]));
    calls.push(fetch(url, { signal: controller.signal }).catch(() => {}));
  }
  // What goes directly asks for names that nobody has; how long that takes is no matter.
  const wanted = rules.filter(([, , goes]) => goes).length;
  await until(() => asked.size >= wanted, "the proxy was asked for each");
  await Bun.sleep(100);
  controller.abort();
  await Promise.all(calls);

  const bun = hosts.map((host) => asked.has(host) || asked.has(`${host}:443`) || asked.has(host.replace(/:\d+$/, "")));
  for (const [at, [variables, address, goes]] of rules.entries())
    expect([variables, address, { bun: bun[at], ours: ours[at] }]).toEqual([
      variables,
      address,
      { bun: goes, ours: goes },
    ]);
});

const through = (HTTPS_PROXY: string, more = {}) => proxyFor("https://api.github.com/x", { HTTPS_PROXY, ...more });

test("the proxy that is named is known without its user name and password", () => {
  expect(through("http://user:p%40ss@Proxy.Corp:8080/path")).toEqual({
    variable: "HTTPS_PROXY",
    address: "http://proxy.corp:8080",
    host: "proxy.corp",
    port: 8080,
    signsIn: true,
  });
  expect(through("https://proxy.corp")).toMatchObject({ address: "https://proxy.corp", port: 443, signsIn: false });
  expect(through("http://[fd00::1]:3128")).toMatchObject({ address: "http://[fd00::1]:3128", host: "fd00::1" });
});

test.each([
  ["socks5://proxy.corp:1080", "names a socks5:// proxy"],
  [" http://proxy.corp:8080", "has a space"],
  ["user:secret@proxy.corp:8080", "does not read as http://host:port"],
  ["http://user:12/secret@proxy.corp:8080", "does not read as http://host:port"],
  ["http://us#er:secret@proxy.corp:8080", "does not read as http://host:port"],
  ["http://proxy.corp:eighty", "does not read as http://host:port"],
])("the proxy that is named: %s cannot be used, and why is said without a word of it", (value, fault) => {
  const proxy = through(value);
  expect(proxy?.fault).toContain(fault);
  expect(JSON.stringify(proxy)).not.toMatch(/secret|12|us#er/);
});

test("a proxy in a variable for everything may be meant for others: it is ignored then, and known to be", () => {
  const env = { ALL_PROXY: "socks5h://someone:secret@proxy.corp:1080" };
  expect(proxyFor("https://api.github.com", env)).toBe(undefined);
  expect(ignoredProxy("https://api.github.com", env)).toMatchObject({
    variable: "ALL_PROXY",
    fault: "names a socks5h:// proxy, and only http:// and https:// proxies can be used",
  });
  expect(ignoredProxy("https://api.github.com", { ...env, HTTPS_PROXY: "http://p:1" })).toBe(undefined);
  expect(ignoredProxy("https://api.github.com", { ...env, NO_PROXY: "*" })).toBe(undefined);
});

test("the proxy that is named is not asked for what NO_PROXY names, nor ever for this machine", () => {
  const proxied = (url: string, NO_PROXY: string) =>
    proxyFor(url, { HTTPS_PROXY: "http://p:1", HTTP_PROXY: "http://p:1", NO_PROXY }) !== undefined;
  expect(proxied("https://10.1.2.3/", "10.0.0.0/8")).toBe(false);
  expect(proxied("https://11.1.2.3/", "10.0.0.0/8")).toBe(true);
  expect(proxied("https://[2001:db8::1]/", "2001:db8::/32")).toBe(false);
  expect(proxied("https://[2001:db8::1]/", "[2001:db8::1]")).toBe(false);
  expect(proxied("https://[2001:db8::1]/", "2001:db8::1")).toBe(false);
  for (const url of ["http://localhost:1", "http://127.0.0.9:1/", "https://[::1]/"])
    expect(proxied(url, "")).toBe(false);
  expect(sparedBy({ NO_PROXY: " .corp, localhost\t10.0.0.0/8,," })).toEqual([".corp", "localhost", "10.0.0.0/8"]);
});
