/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Whether all is well, and what a person needs to know when it is not. */
import { statSync } from "node:fs";
import type { App } from "../../../app";
import { describeInstance, type Meta } from "../../api/meta";
import { Ago, duration, formatCount, Moment, plural, Sentence, size } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Pair } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";

export function healthPage({ app, frame, url, exposed, caller }: PageContext): Markup {
  const now = app.now();
  const meta = describeInstance(app);
  const checks = checksOf(app, meta, exposed);
  const worst = checks.find(({ tone }) => tone === "bad") ?? checks.find(({ tone }) => tone === "warn");
  const word = worst === undefined ? "well" : worst.tone === "bad" ? "not well" : "limited";
  return (
    <Page
      frame={frame}
      title="Health"
      current="/admin/health"
      aside={<span class={`badge ${worst?.tone ?? "good"}`}>{word}</span>}
    >
      <section class="card" aria-labelledby="checks">
        <h2 id="checks">Checks</h2>
        <ul class="checks">
          {checks.map(({ tone, what, told }) => (
            <li>
              <span class={`badge ${tone}`}>{toneNames[tone]}</span>
              <strong>{what}</strong>
              <span>
                <Sentence of={told} />
              </span>
            </li>
          ))}
        </ul>
      </section>
      <div class="halves">
        <section class="card" aria-labelledby="program">
          <h2 id="program">Program</h2>
          <dl class="pairs">
            <Pair name="Version">
              {app.version}
              {app.demo && ", DEMO"}
            </Pair>
            <Pair name="Runs on">
              Bun {Bun.version}, {process.platform} {process.arch}
            </Pair>
            <Pair name="Process">{process.pid}</Pair>
            <Pair name="Started">
              <Moment at={meta.started_at_ms} now={now} />{" "}
              <span class="soft">({duration(Math.max(0, now - meta.started_at_ms))})</span>
            </Pair>
            <Pair name="Memory">{size(process.memoryUsage.rss())}</Pair>
            <Pair name="Address">{url.origin}</Pair>
            <Pair name="You came">
              {caller.local ? "from this machine" : `from ${caller.peer ?? "an unknown address"}`}
              {caller.forwardedBy && ", through a proxy"}
            </Pair>
            <Pair name="Running now">
              <a href="/admin/requests?follow=1">{plural(meta.running_count, "request")}</a>
            </Pair>
            <Pair name="Clock">{meta.time_zone}</Pair>
          </dl>
        </section>
        <section class="card" aria-labelledby="history">
          <h2 id="history">History</h2>
          <dl class="pairs">
            <Pair name="File">
              <code class="path">{meta.dbPath}</code>
            </Pair>
            <Pair name="Size">{sizeOf(meta.dbPath)}</Pair>
            <Pair name="Rows">
              {meta.row_count === null ? (
                <span class="unknown">unknown</span>
              ) : (
                <>
                  <a href={requestsPath()}>{formatCount(meta.row_count)}</a>{" "}
                  <span class="soft">of {formatCount(meta.maxRows)} at most</span>
                </>
              )}
            </Pair>
            <Pair name="Oldest">
              <Ago at={meta.oldest_row_at_ms} now={now} never="none" />
            </Pair>
            <Pair name="Kept for">{plural(meta.retentionDays, "day")}</Pair>
            <Pair name="Data folder">
              <code class="path">{app.environment.home}</code>
            </Pair>
            <Pair name="Log level">
              <a href="/admin/config">{app.config.current.logLevel}</a>
            </Pair>
          </dl>
        </section>
      </div>
      <section class="card" aria-labelledby="machines">
        <h2 id="machines">For machines</h2>
        <ul class="plain-list">
          <li>
            <a href="/health">/health</a> <span class="soft">answers 200 as long as requests are taken</span>
          </li>
          <li>
            <a href="/api/admin/meta">/api/admin/meta</a> <span class="soft">what stands here, as JSON</span>
          </li>
          <li>
            <a href="/usage">/usage</a> <span class="soft">what is left, for each account</span>
          </li>
        </ul>
      </section>
    </Page>
  );
}

interface Check {
  tone: "good" | "warn" | "bad" | "idle";
  what: string;
  told: string;
}

const toneNames = { good: "well", warn: "look", bad: "act", idle: "note" };

function checksOf(app: App, meta: Meta, exposed: boolean): Check[] {
  const { accounts, config, clientKeys, environment } = app;
  const ready = accounts.filter(({ state }) => state.name === "ready").length;
  const failed = accounts.filter(({ state }) => state.name === "failed");
  const refused = app.unsupportedParams.all().length;
  return [
    accounts.length === 0
      ? { tone: "bad", what: "Accounts", told: "None is signed in: run `dragoman auth`." }
      : ready === 0
        ? { tone: "bad", what: "Accounts", told: `None of ${accounts.length} can serve now.` }
        : failed.length > 0
          ? {
              tone: "warn",
              what: "Accounts",
              told: `${ready} of ${accounts.length} can serve; ${failed.map(({ id }) => id).join(", ")} needs you.`,
            }
          : { tone: "good", what: "Accounts", told: `${ready} of ${accounts.length} can serve.` },
    meta.history === "degraded"
      ? { tone: "bad", what: "History", told: "Rows wait for the disk, or none are kept; requests go on." }
      : { tone: "good", what: "History", told: "Every exchange is written." },
    config.fault !== undefined
      ? { tone: "bad", what: "Config", told: `${config.fault} What held before goes on.` }
      : config.waiting.length > 0
        ? { tone: "warn", what: "Config", told: `${config.waiting.join(", ")} counts from the next start.` }
        : { tone: "good", what: "Config", told: "The file reads, and holds." },
    accessCheck(exposed, clientKeys.length),
    environment.adminToken === undefined
      ? { tone: "idle", what: "These pages", told: "Open to this machine only: no ADMIN_TOKEN is set." }
      : { tone: "good", what: "These pages", told: "From other machines with the admin token." },
    refused > 0
      ? {
          tone: "idle",
          what: "Refused fields",
          told: `${plural(refused, "field")} left out for now; the models page says which.`,
        }
      : { tone: "good", what: "Refused fields", told: "None lately." },
  ];
}

function accessCheck(exposed: boolean, keys: number): Check {
  if (exposed && keys === 0)
    return {
      tone: "bad",
      what: "Who may call",
      told: "Anybody who reaches this machine: it listens beyond it, and no client key is set.",
    };
  if (exposed)
    return {
      tone: "good",
      what: "Who may call",
      told: `Other machines too, with one of ${plural(keys, "client key")}.`,
    };
  if (keys === 0) return { tone: "good", what: "Who may call", told: "Any program on this machine, no web page." };
  return {
    tone: "good",
    what: "Who may call",
    told: `Programs on this machine, with one of ${plural(keys, "client key")}.`,
  };
}

/** With what waits to be put into the file. */
function sizeOf(path: string): string {
  const bytes = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  const [file = 0, log = 0] = bytes;
  return file === 0 ? "no file" : `${size(file)}${log > 0 ? ` and ${size(log)} of write-ahead log` : ""}`;
}
