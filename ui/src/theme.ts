import {
  Accordion,
  createTheme,
  Tooltip,
  Table,
  TableScrollContainer,
  Modal,
  Button,
  ActionIcon,
  Paper,
  TextInput,
} from '@mantine/core';

/** One accent colour; everything else is grey. The colours of states are in `app.css`. */
export const theme = createTheme({
  primaryColor: 'iris',
  primaryShade: { light: 6, dark: 7 },
  colors: {
    iris: [
      '#f1f1fe',
      '#e2e2fb',
      '#c5c5f6',
      '#a8a8f1',
      '#8d8deb',
      '#7373e1',
      '#5b5bd6',
      '#4f4fc4',
      '#4040a3',
      '#32327f',
    ],
    dark: [
      '#d5d7de',
      '#b3b7c2',
      '#969baa',
      '#5f6575',
      '#3a3f4d',
      '#2c313d',
      '#22262f',
      '#191c23',
      '#13151a',
      '#0e1013',
    ],
  },
  fontFamily:
    '"Inter Variable", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
  defaultRadius: 'md',
  headings: { fontWeight: '650' },
  cursorType: 'pointer',
  autoContrast: true,
  components: {
    Tooltip: Tooltip.extend({ defaultProps: { withArrow: true, openDelay: 200 } }),
    Table: Table.extend({
      defaultProps: { verticalSpacing: 8, horizontalSpacing: 'md' },
      styles: { th: { fontSize: 12, fontWeight: 600, color: 'var(--text-soft)' } },
    }),
    TableScrollContainer: TableScrollContainer.extend({ defaultProps: { pb: 0 } }),
    Modal: Modal.extend({
      defaultProps: {
        overlayProps: { backgroundOpacity: 0.4 },
        radius: 'lg',
        transitionProps: { duration: 120 },
      },
    }),
    Button: Button.extend({ defaultProps: { size: 'sm' } }),
    ActionIcon: ActionIcon.extend({ defaultProps: { variant: 'subtle', color: 'gray' } }),
    Accordion: Accordion.extend({
      styles: { item: { background: 'var(--card)', borderColor: 'var(--line)' } },
    }),
    Paper: Paper.extend({ defaultProps: { radius: 'lg' } }),
    TextInput: TextInput.extend({ defaultProps: { autoComplete: 'off', spellCheck: false } }),
  },
});
