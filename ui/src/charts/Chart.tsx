import 'uplot/dist/uPlot.min.css';
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import { useViewerZone } from '../time/viewerZone';
import classes from './Chart.module.css';
import type { ChartProps } from './chartTypes';
import { Legend } from './Legend';
import { optionsFor, stacked } from './options';

/** Lines or stacked bars over time. The legend next to the canvas shows the same values as text. */
export default function Chart(props: ChartProps) {
  const { times, series, kind, format, label, height = 200 } = props;
  const zone = useViewerZone();
  const scheme = useComputedColorScheme('light');
  const { ref, width } = useElementSize();
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const shape = series.map((entry) => `${entry.label} ${entry.colour}`).join();

  useEffect(() => {
    if (!container.current || width === 0) return;
    plot.current = new uPlot(
      optionsFor({ series, kind, format, zone, width, height, onPoint: setAt }),
      dataOf(times, series, kind),
      container.current,
    );
    return () => {
      plot.current?.destroy();
      plot.current = null;
    };
    // oxlint-disable-next-line react/exhaustive-deps -- new values are set below; only a different shape needs a new plot
  }, [shape, kind, zone, width, height, scheme]);

  useEffect(() => plot.current?.setData(dataOf(times, series, kind)), [times, series, kind]);

  const selected = at ?? times.length - 1;
  return (
    <figure className={classes.root} ref={ref}>
      <Legend series={series} index={selected} time={times[selected]} format={format} zone={zone} />
      <div ref={container} role="img" aria-label={label} style={{ height }} />
    </figure>
  );
}

function dataOf(times: number[], series: ChartProps['series'], kind: ChartProps['kind']): uPlot.AlignedData {
  const values = series.map((entry) => entry.values);
  return [times, ...(kind === 'bars' ? stacked(values) : values)] as uPlot.AlignedData;
}
