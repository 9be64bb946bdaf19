/** The `OTEL_*` variables that this room reads itself. The exporters read those that begin with `OTEL_EXPORTER_OTLP_`. */

type Variables = Readonly<Record<string, string | undefined>>;

const signals = ["traces", "metrics"] as const;
type Signal = (typeof signals)[number];

/** The encodings of OTLP over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp */
const protocols = ["http/protobuf", "http/json"] as const;
export type Protocol = (typeof protocols)[number];

export interface OtelSettings {
  /** What is exported, and how. */
  exports: Partial<Record<Signal, Protocol>>;
  /** What is not as the owner wanted it, as sentences. */
  faults: string[];
}

/**
 * What the owner asked for. Nothing, unless a variable names an exporter or an address.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export function readOtelSettings(env: Variables): OtelSettings {
  const settings: OtelSettings = { exports: {}, faults: [] };
  if (valueIn(env, "OTEL_SDK_DISABLED")?.toLowerCase() === "true") return settings;
  for (const signal of signals) {
    const upper = signal.toUpperCase();
    const exporter = valueIn(env, `OTEL_${upper}_EXPORTER`);
    const address = valueIn(env, `OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`) ?? valueIn(env, "OTEL_EXPORTER_OTLP_ENDPOINT");
    if (exporter === "none" || (exporter === undefined && address === undefined)) continue;
    const fault = exporterFault(`OTEL_${upper}_EXPORTER`, exporter) ?? addressFault(address);
    const protocol = protocolOf(env, upper);
    if (fault !== undefined || "fault" in protocol)
      settings.faults.push(`No ${signal} are exported: ${fault ?? ("fault" in protocol ? protocol.fault : "")}`);
    else settings.exports[signal] = protocol.protocol;
  }
  return settings;
}

/** Where the exports go, for people; without a path or credentials. */
export function collectorOf(env: Variables): string {
  const names = signals.map((signal) => `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`);
  const given = [...names, "OTEL_EXPORTER_OTLP_ENDPOINT"].flatMap((name) => valueIn(env, name) ?? []);
  const hosts = new Set(given.flatMap((address) => URL.parse(address)?.origin ?? []));
  return hosts.size === 0 ? "http://localhost:4318" : [...hosts].join(", ");
}

const exporterFault = (name: string, exporter: string | undefined): string | undefined =>
  exporter === undefined || exporter === "otlp"
    ? undefined
    : `${name} is ${exporter.slice(0, 40)}; only otlp and none are known. Metrics for Prometheus are at /metrics.`;

const addressFault = (address: string | undefined): string | undefined =>
  address === undefined || /^https?:$/.test(URL.parse(address)?.protocol ?? "")
    ? undefined
    : "OTEL_EXPORTER_OTLP_ENDPOINT must begin with http:// or https://.";

function protocolOf(env: Variables, signal: string): { protocol: Protocol } | { fault: string } {
  const name = [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, "OTEL_EXPORTER_OTLP_PROTOCOL"].find((each) =>
    valueIn(env, each),
  );
  const given = name === undefined ? protocols[0] : valueIn(env, name);
  const protocol = protocols.find((each) => each === given);
  if (protocol) return { protocol };
  return {
    fault: `${name} is ${given?.slice(0, 40)}; only ${protocols.join(" and ")} are known, at port 4318 of most collectors.`,
  };
}

/** Milliseconds or a count; undefined if the variable is unset or no whole number above 0. */
export function positiveIn(env: Variables, name: string): number | undefined {
  const value = valueIn(env, name);
  return value !== undefined && /^\d{1,9}$/.test(value) && Number(value) > 0 ? Number(value) : undefined;
}

/** Blank means unset. */
export const valueIn = (env: Variables, name: string): string | undefined => env[name]?.trim() || undefined;
