import { LineIcon } from '../../parts/Icon';

/** Icons that only Momentum shows. */
const PATHS = {
  calendar: 'M5 5h14v15H5zM5 10h14M9 3v4M15 3v4',
  inbox: 'M4 13l3-8h10l3 8v6H4zM4 13h5l1.5 3h3L15 13h5',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c0-3.5 3-5.5 6.5-5.5s6.5 2 6.5 5.5M16 4.5a3.5 3.5 0 0 1 0 6M18 15c2.2 .8 3.5 2.5 3.5 5',
  log: 'M5 4h14v16H5zM8.5 9h7M8.5 13h7M8.5 17h4',
  settings:
    'M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM12 2.5v3M12 18.5v3M2.5 12h3M18.5 12h3M5.3 5.3l2.1 2.1M16.6 16.6l2.1 2.1M5.3 18.7l2.1-2.1M16.6 7.4l2.1-2.1',
  screen: 'M3 5h18v11H3zM8 20h8M12 16v4',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5',
  moon: 'M20 14a8 8 0 1 1-9.5-10A6.5 6.5 0 0 0 20 14z',
  image: 'M4 5h16v14H4zM4 16l5-5 4 4 2.5-2.5L20 17M15.5 9v.01',
  video: 'M3 6h12v12H3zM15 10.5l6-3.5v10l-6-3.5',
  document: 'M6 3h8l5 5v13H6zM14 3v5h5M9 13h7M9 17h7',
  link: 'M10 14a4 4 0 0 0 5.7 0l3.5-3.5a4 4 0 0 0-5.7-5.7L12 6.3M14 10a4 4 0 0 0-5.7 0l-3.5 3.5a4 4 0 0 0 5.7 5.7L12 17.7',
  mention: 'M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM16 8v5.5a2.5 2.5 0 0 0 5 0V12a9 9 0 1 0-3.5 7.1',
  send: 'M21 3L3 10.5l7 3 3 7zM10 13.5L21 3',
  upload: 'M12 16V4M7 9l5-5 5 5M4 16v4h16v-4',
  download: 'M12 4v12M7 11l5 5 5-5M4 16v4h16v-4',
  left: 'M15 5l-7 7 7 7',
  right: 'M9 5l7 7-7 7',
  move: 'M5 5h14v15H5zM5 10h14M9 3v4M15 3v4M9 15h6M12.5 12.5L15 15l-2.5 2.5',
  open: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  like: 'M7 11l4-8c1.7 0 2.5 1.2 2.5 2.5V9H19l-1.5 10H7zM7 11H3.5v8H7',
  comment: 'M4 5h16v11h-8l-5 4v-4H4z',
  repost: 'M7 7h10v7M14 11l3 3 3-3M17 17H7v-7M10 13l-3-3-3 3',
} as const;

export type GlyphName = keyof typeof PATHS;

export function Glyph({ name, size = 16 }: { name: GlyphName; size?: number }) {
  return <LineIcon path={PATHS[name]} size={size} />;
}
