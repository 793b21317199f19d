import { SimpleGrid } from '@mantine/core';
import { Link } from 'wouter';
import type { Stats } from '../../api/types';
import classes from './Tiles.module.css';

const TILES: ReadonlyArray<{
  name: keyof Stats['live'];
  label: string;
  hint: string;
  href: string;
  tone: string;
}> = [
  {
    name: 'running',
    label: 'Running',
    hint: 'right now',
    href: '/jobs?state=running',
    tone: 'running',
  },
  {
    name: 'due',
    label: 'Due',
    hint: 'waiting for a worker',
    href: '/jobs?state=pending',
    tone: 'retrying',
  },
  {
    name: 'pending',
    label: 'Pending',
    hint: 'due now or later',
    href: '/jobs?state=pending',
    tone: 'pending',
  },
  { name: 'dead', label: 'Dead letters', hint: 'all attempts failed', href: '/dead', tone: 'dead' },
];

export function Tiles({ live }: { live: Stats['live'] }) {
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      {TILES.map((tile) => (
        <Link
          key={tile.name}
          href={tile.href}
          className={classes.tile}
          data-quiet={live[tile.name] === 0 || undefined}
        >
          <span className={classes.label}>
            <span className={classes.dot} style={{ background: `var(--state-${tile.tone})` }} />
            {tile.label}
          </span>
          <span className={classes.number}>{live[tile.name].toLocaleString('en')}</span>
          <span className={classes.hint}>{tile.hint}</span>
        </Link>
      ))}
    </SimpleGrid>
  );
}
