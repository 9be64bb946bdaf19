/** @jsxRuntime automatic @jsxImportSource #jsx */
/** Checks of the running server, and facts about the program and its history. */
import { statSync } from "node:fs";
import { driftList } from "../../../books/changes/drift-list";
import type { Loss } from "../../../books/changes/losses";
import { duration, formatCount, plural, size } from "../../../lib/format";
import type { App } from "../../../parts/app";
import { type Fact, factsOf, wholeOf } from "../../../parts/facts";
import type { Team } from "../../../people/keys/team";
import { describeInstance, type Meta } from "../../api/meta";
import { Ago, Moment, Sentence } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { requestsPath } from "../../ui/links";
import { Pair, Section, Table } from "../../ui/lists";
import type { OwnerContext } from "../../ui/page-context";

export async function healthPage(context: OwnerContext): Promise<Markup> {
  const { app, frame } = context;
  const meta = await describeInstance(app);
  const facts = factsOf(app);
  const { items, overflow } = driftList(app.drift, app.losses);
  const losses = app.losses.current;
  const worst = facts.find(({ state }) => state === "bad") ?? facts.find(({ state }) => state === "warn");

  return (
    <Page
      frame={frame}
      title="Health"
      current="/admin/health"
      aside={<span class={`badge ${worst?.state ?? "good"}`}>{stateNames[worst?.state ?? "good"]}</span>}
    >
      <Checks facts={facts} />
      <div class="halves">
        <Program context={context} meta={meta} />
        <HistoryFacts app={app} meta={meta} />
      </div>
      {app.team && <TeamServers team={app.team} />}
      {losses.length > 0 && <MissingInUpstream losses={losses} now={app.now()} />}
      {items.length > 0 && <NewInUpstream items={items} overflow={overflow} now={app.now()} />}
      <Endpoints />
    </Page>
  );
}

const stateNames: Record<Fact["state"], string> = { good: "OK", warn: "Warning", bad: "Failed", idle: "Note" };

const Checks = ({ facts }: { facts: Fact[] }) => (
  <Section id="checks" title="Checks" card>
    <ul class="checks">
      {facts.map((fact) => (
        <li>
          <span class={`badge ${fact.state}`}>{stateNames[fact.state]}</span>
          <strong>{fact.name}</strong>
          <span>
            <Sentence of={wholeOf(fact)} />
          </span>
        </li>
      ))}
    </ul>
  </Section>
);

const Program = ({ context: { app, url, caller }, meta }: { context: OwnerContext; meta: Meta }) => (
  <Section id="program" title="Program" card>
    <dl class="pairs">
      <Pair name="Version">
        {app.version}
        {app.demo && ", DEMO"}
      </Pair>
      <Pair name="Runtime">
        Bun {Bun.version}, {process.platform} {process.arch}
      </Pair>
      <Pair name="Process ID">{process.pid}</Pair>
      <Pair name="Started">
        <Moment at={meta.started_at_ms} now={app.now()} />{" "}
        <span class="soft">({duration(Math.max(0, app.now() - meta.started_at_ms))})</span>
      </Pair>
      <Pair name="Memory">{size(process.memoryUsage.rss())}</Pair>
      <Pair name="Address">{url.origin}</Pair>
      <Pair name="Your connection">
        {caller.local ? "from this machine" : `from ${caller.peer ?? "an unknown address"}`}
        {caller.forwardedBy && ", through a proxy"}
      </Pair>
      <Pair name="Running requests">
        <a href="/admin/requests?follow=1">{plural(meta.running_count, "request")}</a>
      </Pair>
      <Pair name="Time zone">{meta.time_zone}</Pair>
    </dl>
  </Section>
);

const HistoryFacts = ({ app, meta }: { app: App; meta: Meta }) => (
  <Section id="history" title="History" card>
    <dl class="pairs">
      <Pair name={app.environment.databaseUrl === undefined ? "File" : "Database"}>
        <code class="path">{meta.dbPath}</code>
      </Pair>
      {app.environment.databaseUrl === undefined && <Pair name="Size">{sizeOf(meta.dbPath)}</Pair>}
      <Pair name="Rows">
        {meta.row_count === null ? (
          <span class="unknown">unknown</span>
        ) : (
          <>
            <a href={requestsPath()}>{formatCount(meta.row_count)}</a>{" "}
            {isLimited(app) && <span class="soft">of at most {formatCount(meta.maxRows)}</span>}
          </>
        )}
      </Pair>
      <Pair name="Oldest request">
        <Ago at={meta.oldest_row_at_ms} now={app.now()} never="none" />
      </Pair>
      <Pair name="Retention">{plural(meta.retentionDays, "day")}</Pair>
      <Pair name="Data folder">
        <code class="path">{app.environment.home}</code>
      </Pair>
      <Pair name="Log level">
        <a href="/admin/config">{app.config.current.logLevel}</a>
      </Pair>
    </dl>
  </Section>
);

const TeamServers = ({ team: { servers, waiting } }: { team: Team }) => (
  <Section id="team" title="Servers of the team" card>
    {servers === undefined ? (
      <p>The database is away, so the other servers are unknown.</p>
    ) : (
      <div class="scroll">
        <Table
          caption="Servers"
          rows={servers}
          columns={[
            [
              "Machine",
              ({ host, isLeader }) => (
                <>
                  {host} {isLeader && <span class="badge idle">leader</span>}
                </>
              ),
            ],
            ["Version", ({ version }) => version],
            ["Id", ({ id }) => <code>{id.slice(0, 8)}</code>],
          ]}
        />
      </div>
    )}
    <p class="soft">
      The leader removes old rows, sends notices and keeps quotas current. On this server, {waitingWords(waiting())} for
      the database.
    </p>
  </Section>
);

const waitingWords = ({ requests, settlements }: ReturnType<Team["waiting"]>) =>
  requests + settlements === 0
    ? "nothing waits"
    : `${plural(requests, "request")} and ${plural(settlements, "settlement")} of budgets wait`;

const MissingInUpstream = ({ losses, now }: { losses: readonly Loss[]; now: number }) => (
  <Section id="missing" title="Missing in the upstream" card>
    <p>
      Copilot no longer sends what this version reads. The numbers that follow from it are shown as unknown. Look for an
      update, or attach what <code>dragoman doctor --deep</code> writes to an issue.
    </p>
    <div class="scroll">
      <Table
        caption="Missing in the upstream"
        rows={losses}
        columns={[
          ["What follows", ({ affects }) => <Sentence of={`${affects[0]?.toUpperCase()}${affects.slice(1)}.`} />],
          ["Member", ({ member }) => <code>{member}</code>],
          ["Where", ({ where }) => where],
          ["Since", ({ firstAt }) => <Ago at={firstAt} now={now} />],
        ]}
      />
    </div>
  </Section>
);

const NewInUpstream = ({
  items,
  overflow,
  now,
}: Pick<ReturnType<typeof driftList>, "items" | "overflow"> & { now: number }) => (
  <Section id="new" title="New in the upstream" card>
    <p>
      Copilot has sent names that this version does not know. Requests may work all the same. Look for an update, or
      attach what <code>dragoman doctor --report</code> writes to an issue.
    </p>
    <div class="scroll">
      <Table
        caption="New in the upstream"
        rows={items}
        columns={[
          ["Kind", ({ kind }) => kind],
          ["Name", ({ name }) => <code>{name}</code>],
          ["Where", ({ where }) => where],
          ["First", (item) => <Ago at={item.first_seen_ms} now={now} />],
          ["Last", (item) => <Ago at={item.last_seen_ms} now={now} />],
        ]}
        numbers={[["Seen", ({ count }) => formatCount(count)]]}
      />
    </div>
    {overflow > 0 && <p class="soft">Further names were left out {plural(overflow, "time")}.</p>}
  </Section>
);

const Endpoints = () => (
  <Section id="machines" title="Endpoints for scripts" card>
    <ul class="plain-list">
      <li>
        <a href="/health">/health</a> <span class="soft">returns 200 while the server accepts requests</span>
      </li>
      <li>
        <a href="/metrics">/metrics</a> <span class="soft">metrics for Prometheus</span>
      </li>
      <li>
        <a href="/api/admin/meta">/api/admin/meta</a> <span class="soft">the data of this page, as JSON</span>
      </li>
      <li>
        <a href="/api/admin/openapi.json">/api/admin/openapi.json</a>{" "}
        <span class="soft">all endpoints as an OpenAPI document</span>
      </li>
      <li>
        <a href="/usage">/usage</a> <span class="soft">the remaining quota of each account</span>
      </li>
    </ul>
  </Section>
);

/** In a database only a limit that somebody has set counts. */
const isLimited = ({ environment, config }: App) =>
  environment.databaseUrl === undefined || config.stored.maxRows !== undefined;

/** Includes the write-ahead log. */
function sizeOf(path: string): string {
  const bytes = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  const [file = 0, log = 0] = bytes;
  return file === 0 ? "no file" : `${size(file)}${log > 0 ? ` and ${size(log)} of write-ahead log` : ""}`;
}
