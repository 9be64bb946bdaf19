/** How often each line ran, by its number, for each file of a report of Bun's coverage. */
export type LineCounts = ReadonlyMap<string, ReadonlyMap<number, number>>;

export const readLcov = (lcov: string): LineCounts =>
  new Map(
    lcov.split("end_of_record").flatMap((record) => {
      const file = /^SF:(.+)$/m.exec(record)?.[1];
      const lines = [...record.matchAll(/^DA:(\d+),(\d+)/gm)].map(
        ([, line, count]) => [Number(line), Number(count)] as const,
      );
      return file === undefined ? [] : [[file, new Map(lines)] as const];
    }),
  );
