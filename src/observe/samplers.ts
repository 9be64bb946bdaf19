/** `OTEL_TRACES_SAMPLER`: which exchanges are traced. */
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";

const roots: Readonly<Record<string, (ratio: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio) => new TraceIdRatioBasedSampler(ratio),
};

/** @param share `OTEL_TRACES_SAMPLER_ARG`: from 0 to 1, for the samplers by ratio. */
export function samplerOf(name = "parentbased_always_on", share = "1"): Sampler | undefined {
  const ratio = Number(share);
  const root = roots[name.replace(/^parentbased_/, "")]?.(ratio >= 0 && ratio <= 1 ? ratio : 1);
  return root && name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}
