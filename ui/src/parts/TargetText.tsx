import { Icon } from './Icon';
import classes from './TargetText.module.css';

interface TargetTextProps {
  target: { type: string; [key: string]: unknown };
  /** In lines, where there is room for them; otherwise what does not fit is left out. */
  whole?: boolean;
}

/** What a job runs: a task by name, or an address. */
export function TargetText({ target, whole }: TargetTextProps) {
  if (target.type === 'http') {
    const method = <span className={classes.method}>{String(target['method'] ?? '')}</span>;
    const address = shortUrl(String(target['url'] ?? ''));
    return (
      <span className={classes.root} data-whole={whole} title={`${String(target['method'] ?? '')} ${String(target['url'] ?? '')}`}>
        <Icon name="globe" size={14} />
        {whole ? (
          <span className={classes.text}>
            {method} {address}
          </span>
        ) : (
          <>
            {method}
            <span className={`${classes.text} ${classes.end}`}>
              <bdi dir="ltr">{address}</bdi>
            </span>
          </>
        )}
      </span>
    );
  }
  return (
    <span className={classes.root} data-whole={whole} title={String(target['name'] ?? target.type)}>
      <Icon name="code" size={14} />
      <span className={`${classes.text} mono`}>{String(target['name'] ?? target.type)}</span>
    </span>
  );
}

const shortUrl = (url: string): string => url.replace(/^https?:\/\//, '');
