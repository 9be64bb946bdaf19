/**
 * A collector for OTLP over HTTP on loopback. It reads protobuf with the decoder that OpenTelemetry generated from its own
 * definitions, which shares no code with the encoder of the exporters.
 */
import { gunzipSync } from "bun";
import root from "otlp-protos/build/src/generated/root.js";

type Value = string | number | boolean | Value[];

interface CollectedSpan {
  name: string;
  kind: "SERVER" | "CLIENT" | "INTERNAL";
  traceId: string;
  spanId: string;
  /** Empty for the first span of a trace. */
  parentId: string;
  /** Unix ms. */
  startedAt: number;
  endedAt: number;
  isError: boolean;
  attributes: Record<string, Value>;
  resource: Record<string, Value>;
}

export interface Collector extends AsyncDisposable {
  url: string;
  spans: CollectedSpan[];
  requests: { path: string; headers: Record<string, string> }[];
  /** Everything that came, as texts of one character for each byte. */
  bodies: string[];
}

/** @param answer Instead of taking what comes. */
export function startCollector(answer?: () => Response | Promise<Response>): Collector {
  const collector: Omit<Collector, "url" | keyof AsyncDisposable> = { spans: [], requests: [], bodies: [] };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const headers = Object.fromEntries(request.headers);
      const path = new URL(request.url).pathname;
      const sent = new Uint8Array(await request.arrayBuffer());
      const bytes = headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
      collector.requests.push({ path, headers });
      collector.bodies.push(Buffer.from(bytes).toString("latin1"));
      if (answer) return answer();
      if (path === "/v1/traces") collector.spans.push(...spansIn(decoded(bytes)));
      return new Response(new Uint8Array(), { headers: { "content-type": "application/x-protobuf" } });
    },
  });
  return {
    ...collector,
    url: server.url.origin,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

interface Attribute {
  key: string;
  value: {
    stringValue?: string;
    intValue?: string | number;
    doubleValue?: number;
    boolValue?: boolean;
    arrayValue?: { values: Attribute["value"][] };
  };
}
interface Message {
  resourceSpans?: { resource: { attributes: Attribute[] }; scopeSpans: { spans: WireSpan[] }[] }[];
}
interface WireSpan {
  name: string;
  kind: number | string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: Attribute[];
  status?: { code?: number | string };
}
/** The part of the generated module that is used here. */
interface Generated {
  opentelemetry: { proto: { collector: Record<string, { v1: Record<string, MessageType> }> } };
}
interface MessageType {
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: object): object;
}

function decoded(bytes: Uint8Array): Message {
  const type = (root as unknown as Generated).opentelemetry.proto.collector.trace!.v1.ExportTraceServiceRequest!;
  // Ids are bytes, which JSON has as base64.
  const message = type.toObject(type.decode(bytes), { longs: String, bytes: String, defaults: true }) as Message;
  for (const span of message.resourceSpans?.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)) ?? [])
    for (const id of ["traceId", "spanId", "parentSpanId"] as const)
      span[id] = Buffer.from(span[id] ?? "", "base64").toString("hex");
  return message;
}

const kinds: Record<string, CollectedSpan["kind"]> = { 1: "INTERNAL", 2: "SERVER", 3: "CLIENT" };

const spansIn = ({ resourceSpans = [] }: Message): CollectedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: kinds[span.kind]!,
        traceId: span.traceId,
        spanId: span.spanId,
        parentId: span.parentSpanId ?? "",
        startedAt: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
        endedAt: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
        isError: Number(span.status?.code ?? 0) === 2,
        attributes: valuesOf(span.attributes),
        resource: valuesOf(resource.attributes),
      })),
    ),
  );

const valuesOf = (attributes: Attribute[] = []): Record<string, Value> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]));

function plainValue({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Attribute["value"]): Value {
  if (arrayValue) return arrayValue.values.map(plainValue);
  if (intValue !== undefined && intValue !== null) return Number(intValue);
  return stringValue ?? doubleValue ?? boolValue ?? "";
}
