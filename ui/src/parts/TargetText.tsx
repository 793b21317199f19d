import { Icon } from './Icon';
import classes from './TargetText.module.css';

/** What a job runs: a task by name, or an address. */
export function TargetText({ target }: { target: { type: string; [key: string]: unknown } }) {
  if (target.type === 'http') {
    return (
      <span className={classes.root}>
        <Icon name="globe" size={14} />
        <span className={classes.text}>
          <span className={classes.method}>{String(target['method'] ?? '')}</span> {shortUrl(String(target['url'] ?? ''))}
        </span>
      </span>
    );
  }
  return (
    <span className={classes.root}>
      <Icon name="code" size={14} />
      <span className={`${classes.text} mono`}>{String(target['name'] ?? target.type)}</span>
    </span>
  );
}

const shortUrl = (url: string): string => url.replace(/^https?:\/\//, '');
