/**
 * Traces and metrics for a collector, by OTLP over HTTP. Loaded at start, and only if a variable asks for it. Whatever happens
 * to an export, no exchange waits for it or fails.
 */
import { DiagLogLevel, diag, ValueType } from "@opentelemetry/api";
import { setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPMetricExporter as JsonMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, type Resource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import { minuteMs } from "../format";
import { describeCause, type Logger } from "../logger";
import { withTimeLimit } from "../net/time-limit";
import { genaiMetrics } from "./genai-metrics";
import { type Metric, type MetricSources, readMetrics } from "./metrics";
import { metricData, scopeOf } from "./otel-data";
import { type OtelSettings, type Protocol, positiveIn, valueIn } from "./otel-settings";
import { samplerOf } from "./samplers";
import { exchangeTracer } from "./spans";
import type { Tracing } from "./tracing";

interface TelemetrySources extends MetricSources {
  logger: Logger;
  tracing: Tracing;
  now(): number;
}

interface Telemetry {
  /** Exports what is left, if that takes no longer than a moment. Never throws. */
  close(): Promise<void>;
}

const traceExporters: Record<Protocol, () => SpanExporter> = {
  "http/protobuf": () => new ProtobufTraceExporter(),
  "http/json": () => new JsonTraceExporter(),
};

const metricExporters: Record<Protocol, () => PushMetricExporter> = {
  "http/protobuf": () => new ProtobufMetricExporter(),
  "http/json": () => new JsonMetricExporter(),
};

/** Milliseconds for the last exports; the program ends after that. */
const closeTimeoutMs = 700;

/** From now on exchanges are traced. @param env All environment variables. */
export function startTelemetry(
  sources: TelemetrySources,
  { exports }: OtelSettings,
  env: Readonly<Record<string, string | undefined>>,
): Telemetry {
  const { logger, tracing } = sources;
  reportTo(logger);
  for (const secret of headerValues(env)) logger.conceal(secret);
  const resource = resourceOf(sources.version, env);
  const closing: (() => Promise<void>)[] = [];
  if (exports.traces) {
    const provider = tracerProvider(resource, traceExporters[exports.traces](), env, logger);
    const { name, version } = scopeOf(sources.version);
    const propagators = (valueIn(env, "OTEL_PROPAGATORS") ?? "tracecontext").split(",").map((each) => each.trim());
    tracing.begin = exchangeTracer(provider.getTracer(name, version), propagators.includes("tracecontext"));
    closing.push(() => provider.shutdown());
  }
  if (exports.metrics) {
    const reader = new PeriodicExportingMetricReader({
      exporter: metricExporters[exports.metrics](),
      metricProducers: [metricProducer(sources, resource)],
      ...metricTimes(env),
    });
    const provider = new MeterProvider({ resource, readers: [reader] });
    closing.push(() => provider.shutdown());
  }
  return {
    async close() {
      tracing.begin = undefined;
      const done = Promise.allSettled(closing.map((close) => close())).then(() => {});
      await withTimeLimit(done, closeTimeoutMs, () => {});
    },
  };
}

function tracerProvider(
  resource: Resource,
  exporter: SpanExporter,
  env: Readonly<Record<string, string | undefined>>,
  logger: Logger,
): TracerProvider {
  const sampler = samplerOf(valueIn(env, "OTEL_TRACES_SAMPLER"), valueIn(env, "OTEL_TRACES_SAMPLER_ARG"));
  if (!sampler) logger.warn("OTEL_TRACES_SAMPLER is no sampler that is known; every exchange is traced.");
  const processor = new BatchSpanProcessor({
    exporter,
    scheduledDelayMillis: positiveIn(env, "OTEL_BSP_SCHEDULE_DELAY"),
    exportTimeoutMillis: positiveIn(env, "OTEL_BSP_EXPORT_TIMEOUT"),
    maxQueueSize: positiveIn(env, "OTEL_BSP_MAX_QUEUE_SIZE"),
    maxExportBatchSize: positiveIn(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
  });
  return new TracerProvider({ resource, sampler, spanProcessors: [processor] });
}

/** A limit that is longer than the interval is an error to the reader. */
function metricTimes(env: Readonly<Record<string, string | undefined>>) {
  const interval = positiveIn(env, "OTEL_METRIC_EXPORT_INTERVAL") ?? 60_000;
  const timeout = positiveIn(env, "OTEL_METRIC_EXPORT_TIMEOUT") ?? 30_000;
  return { exportIntervalMillis: interval, exportTimeoutMillis: Math.min(timeout, interval) };
}

function resourceOf(version: string, env: Readonly<Record<string, string | undefined>>): Resource {
  const own = {
    "service.name": "dragoman",
    "service.version": version,
    "service.instance.id": crypto.randomUUID(),
    "process.runtime.name": "bun",
    "process.runtime.version": Bun.version,
  };
  const name = valueIn(env, "OTEL_SERVICE_NAME");
  return resourceFromAttributes(own)
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes(name === undefined ? {} : { "service.name": name }));
}

/** The values of `OTEL_EXPORTER_OTLP_HEADERS` and its variants, `name=value,…`: keys of a collector. */
const headerValues = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(env)
    .filter(([name]) => /^OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS$/.test(name))
    .flatMap(([, list = ""]) => list.split(",").map((pair) => pair.slice(pair.indexOf("=") + 1).trim()))
    .filter((value) => value !== "");

/** The values of `/metrics`, read when they are exported. */
function metricProducer(sources: TelemetrySources, resource: Resource): MetricProducer {
  return {
    async collect() {
      const metrics = [...(await readMetrics(sources)), ...genaiMetrics(sources.exchangeMetrics)];
      const data = metrics
        .filter(({ points }) => points.length > 0)
        .map((metric) => metricData(metric, descriptorOf, sources.now()));
      return {
        resourceMetrics: { resource, scopeMetrics: [{ scope: scopeOf(sources.version), metrics: data }] },
        errors: [],
      };
    },
  };
}

/** `dragoman_requests_total` → `dragoman.requests` */
const descriptorOf = ({ name, otelName, help, unit }: Metric) => ({
  name: otelName ?? name.replace(/_total$/, "").replace(/^(dragoman|process)_/, "$1."),
  description: help,
  unit,
  valueType: ValueType.DOUBLE,
});

/** An export that fails is reported once a minute; what else the packages say is for debugging. */
function reportTo(logger: Logger): void {
  let reportedAt = Number.NEGATIVE_INFINITY;
  setGlobalErrorHandler((thrown) => {
    if (performance.now() - reportedAt < minuteMs) return;
    reportedAt = performance.now();
    logger.warn("Telemetry could not be exported, and some of it is lost; requests are not affected.", thrown);
  });
  const say = (message: string, ...more: unknown[]) =>
    logger.debug(`OpenTelemetry: ${[message, ...more.map((each) => describeCause(each))].join(" ")}`);
  diag.setLogger(
    { error: say, warn: say, info: say, debug() {}, verbose() {} },
    { logLevel: DiagLogLevel.INFO, suppressOverrideMessage: true },
  );
}
