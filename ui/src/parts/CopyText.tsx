import { useClipboard } from '@mantine/hooks';
import classes from './CopyText.module.css';
import { Icon } from './Icon';

interface CopyTextProps {
  text: string;
  /** What is shown of it; all of it when absent. */
  shown?: string;
  label?: string;
}

/** An id or address that a click copies. */
export function CopyText({ text, shown, label = 'Copy' }: CopyTextProps) {
  const clipboard = useClipboard({ timeout: 1_500 });
  return (
    <button type="button" className={classes.root} title={clipboard.copied ? 'Copied' : `${label}: ${text}`} aria-label={`${label} ${shown ?? text}`} onClick={() => clipboard.copy(text)}>
      <span className={classes.text}>{shown ?? text}</span>
      <Icon name={clipboard.copied ? 'check' : 'copy'} size={13} />
    </button>
  );
}

/** The end of an id is what tells one from another: ids of one moment begin alike. */
export function CopyId({ id, full = false }: { id: string; full?: boolean }) {
  return <CopyText text={id} shown={full ? id : `…${id.slice(-8)}`} label="Copy id" />;
}
