/**
 * Traces for a collector, by OTLP over HTTP. Loaded at start, and only if a variable asks for it. Whatever happens to an export,
 * no exchange waits for it or fails.
 */
import { DiagLogLevel, diag } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { minuteMs } from "../../lib/format";
import { isObject, parseJson } from "../../lib/json";
import { describeCause, type Logger } from "../../lib/logger";
import { withTimeLimit } from "../../lib/net/time-limit";
import { collectorOf } from "./otel-settings";
import { exchangeTracer } from "./spans";
import type { Tracing } from "./tracing";

type Variables = Readonly<Record<string, string | undefined>>;

interface TraceSources {
  version: string;
  logger: Logger;
  tracing: Tracing;
}

interface TraceExport {
  /** Where they go, for people. */
  collector: string;
  /** Exports what is left, if that takes no longer than a moment. Never throws. */
  close(): Promise<void>;
}

/** Spans that wait for the collector; the oldest of a full queue are kept. */
const maxQueueSize = 8_192;

/** Milliseconds for the last exports; the program ends after that. */
const closeTimeoutMs = 700;

/** From now on exchanges are traced. @param env All environment variables. */
export function startTraces({ version, logger, tracing }: TraceSources, env: Variables): TraceExport {
  reportTo(logger);
  for (const secret of headerValues(env)) logger.conceal(secret);
  const processor = new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), maxQueueSize });
  const provider = new TracerProvider({ resource: resourceOf(version), spanProcessors: [processor] });
  tracing.begin = exchangeTracer(provider.getTracer("dragoman", version));
  return {
    collector: collectorOf(env),
    async close() {
      tracing.begin = undefined;
      const done = provider.shutdown().catch(() => {}); // The packages have reported why.
      await withTimeLimit(done, closeTimeoutMs, () => {});
    },
  };
}

/** What `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say goes before our own. */
const resourceOf = (version: string): Resource =>
  resourceFromAttributes({
    "service.name": "dragoman",
    "service.version": version,
    "service.instance.id": crypto.randomUUID(),
    "process.runtime.name": "bun",
    "process.runtime.version": Bun.version,
  }).merge(detectResources({ detectors: [envDetector] }));

/** The values of `OTEL_EXPORTER_OTLP_HEADERS` and its variants, `name=value,…`: keys of a collector. */
const headerValues = (env: Variables): string[] =>
  Object.entries(env)
    .filter(([name]) => /^OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS$/.test(name))
    .flatMap(([, list = ""]) => list.split(",").map((pair) => pair.slice(pair.indexOf("=") + 1).trim()))
    .filter((value) => value !== "");

/** An error of the packages, such as an export that fails, is reported once a minute; what else they say is for debugging. */
function reportTo(logger: Logger): void {
  let reportedAt = Number.NEGATIVE_INFINITY;
  const say = (message: string, ...more: unknown[]) =>
    logger.debug(`OpenTelemetry: ${[message, ...more.map((each) => describeCause(each))].join(" ")}`);
  const error = (message: string) => {
    if (performance.now() - reportedAt < minuteMs) return;
    reportedAt = performance.now();
    logger.warn("Traces could not be exported, and some are lost; requests are not affected.", sentenceOf(message));
  };
  diag.setLogger(
    { error, warn: say, info: say, debug() {}, verbose() {} },
    { logLevel: DiagLogLevel.INFO, suppressOverrideMessage: true },
  );
}

/** @param message Of an error that was thrown, its members in JSON, among which is its stack. */
function sentenceOf(message: string): string {
  const thrown = parseJson(message);
  return isObject(thrown) && typeof thrown.message === "string" ? thrown.message : message;
}
