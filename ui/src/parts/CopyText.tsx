import { useClipboard } from '@mantine/hooks';
import classes from './CopyText.module.css';
import { Icon } from './Icon';

interface CopyTextProps {
  text: string;
  /** The visible text, if it is shorter than the copied one. */
  display?: string;
  label?: string;
}

/** A text, such as an id, that a click copies. */
export function CopyText({ text, display, label = 'Copy' }: CopyTextProps) {
  const clipboard = useClipboard({ timeout: 1_500 });
  return (
    <button
      type="button"
      className={classes.root}
      title={clipboard.copied ? 'Copied' : `${label}: ${text}`}
      aria-label={`${label} ${display ?? text}`}
      onClick={() => clipboard.copy(text)}
    >
      <span className={classes.text}>{display ?? text}</span>
      <Icon name={clipboard.copied ? 'check' : 'copy'} size={13} />
    </button>
  );
}

/** Shows the end of an id: ids created at the same time have the same beginning. */
export function CopyId({ id, full = false }: { id: string; full?: boolean }) {
  return <CopyText text={id} display={full ? id : `…${id.slice(-8)}`} label="Copy id" />;
}
