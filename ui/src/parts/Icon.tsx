const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z',
  schedule: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2',
  job: 'M4 6h16M4 12h16M4 18h10',
  calendar: 'M5 5h14v15H5zM5 10h14M9 3v4M15 3v4',
  dead: 'M12 3l10 18H2zM12 10v5M12 18v.01',
  alert: 'M6 17h12l-1.5-2v-4a4.5 4.5 0 0 0-9 0v4zM10 20h4M12 4v2.5',
  node: 'M4 4h16v6H4zM4 14h16v6H4zM8 7v.01M8 17v.01',
  queue: 'M4 7l8-4 8 4-8 4zM4 12l8 4 8-4M4 17l8 4 8-4',
  key: 'M14 10a4 4 0 1 0-3.8 4L12 16h3v3h3v2h3v-4l-6.2-6.2',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-4.6-4.6',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4l13 8-13 8z',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M4 12l5 6L20 6',
  cross: 'M6 6l12 12M18 6L6 18',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5',
  moon: 'M20 14a8 8 0 1 1-9.5-10A6.5 6.5 0 0 0 20 14z',
  user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 3.5-6 8-6s8 2 8 6',
  more: 'M5 12v.01M12 12v.01M19 12v.01',
  bolt: 'M13 2L4 14h7l-1 8 9-12h-7z',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 14h10l1-14M10 11v6M14 11v6',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  globe: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  code: 'M8 7l-5 5 5 5M16 7l5 5-5 5',
  retry: 'M4 12a8 8 0 1 1 2.5 5.8M4 20v-5h5',
  filter: 'M3 5h18l-7 8v6l-4 2v-8z',
  help: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 17v.01',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  down: 'M6 9l6 6 6-6',
  history: 'M4 12a8 8 0 1 0 2.5-5.8M4 4v5h5M12 8v4l3 2',
  warning: 'M12 3l10 18H2zM12 10v5M12 18v.01',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return <LineIcon path={PATHS[name]} size={size} />;
}

/** A drawing of lines on a grid of 24 by 24. */
export function LineIcon({ path, size }: { path: string; size: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={path} />
    </svg>
  );
}
