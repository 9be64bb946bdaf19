/** @jsxRuntime automatic @jsxImportSource #jsx */
/** What people elsewhere need so that they can be members, and what the owner does for it. */
import type { App } from "../../../parts/app";
import { Sentence } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Section } from "../../ui/lists";

interface Need {
  name: string;
  isMet: boolean;
  says: string;
}

/** @param url Of the page, as the owner's browser names it. */
function needsOf({ exposed, trustedProxies, clientKeys, environment }: App, { protocol, origin }: URL): Need[] {
  const isReached = exposed || trustedProxies !== undefined;
  return [
    {
      name: "Address",
      isMet: isReached,
      says: isReached
        ? `Links begin with the address by which you open this page, now ${origin}.`
        : "Only this machine reaches this server. Put a proxy before it, such as `caddy reverse-proxy --from dragoman.example.com --to 127.0.0.1:4141`, and start it with `--trust-proxy 127.0.0.1/32`.",
    },
    {
      name: "TLS",
      isMet: protocol === "https:",
      says:
        protocol === "https:"
          ? "Keys are not sent in the clear."
          : "You see this page without TLS. Over the network, keys would be sent in the clear, and Claude Code does not sign in: open the page by the address of the proxy.",
    },
    {
      name: "Your token",
      isMet: environment.adminToken !== undefined,
      says:
        environment.adminToken !== undefined
          ? "ADMIN_TOKEN is set: with it you open these pages from elsewhere."
          : "Set ADMIN_TOKEN where dragoman runs: behind a proxy, or from another machine, you open these pages with it.",
    },
    {
      name: "Your keys",
      isMet: clientKeys.length > 0,
      says:
        clientKeys.length > 0
          ? "Your own tools have a key."
          : "From the first invitation on, every client must send a key. Make one for your own tools on the page Keys.",
    },
  ];
}

/** Nothing where all is there. */
export function MembersNeeds({ app, url }: { app: App; url: URL }): Markup | false {
  const needs = needsOf(app, url);
  if (needs.every(({ isMet }) => isMet)) return false;
  return (
    <Section id="needs" title="What members need" card>
      <ul class="checks">
        {needs.map(({ name, isMet, says }) => (
          <li>
            <span class={`badge ${isMet ? "good" : "warn"}`}>{isMet ? "OK" : "Missing"}</span>
            <strong>{name}</strong>
            <span>
              <Sentence of={says} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
