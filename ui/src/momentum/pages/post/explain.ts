import type { Platform, Post } from '../../api/types';
import { isPlanned } from '../../parts/states';
import { sentence } from '../../text/sentence';

interface Explanation {
  tone: 'good' | 'warn' | 'bad';
  title: string;
  text: string;
  inbox?: boolean;
}

/** What the state means for the person, in plain words. */
export function explain(post: Post, platform: string, hold: Platform['hold']): Explanation | null {
  const reason = sentence(post.error ?? '');
  switch (post.state) {
    case 'published':
      return {
        tone: 'good',
        title: `Accepted by ${platform}`,
        text: `${platform} has taken the post. It may still review or hide it, which cannot be seen from here.`,
      };
    case 'unknown':
      return {
        tone: 'warn',
        title: `It is not known whether ${platform} published it`,
        text: `${reason} To avoid posting twice, Momentum does not try again by itself. Look at your profile and decide.`,
        inbox: true,
      };
    case 'failed':
      return {
        tone: 'bad',
        title: 'Not published',
        text: `${reason} Nothing was posted. Edit it and schedule it again.`.trim(),
        inbox: true,
      };
  }
  if (!isPlanned(post.state)) return null;
  if (post.needs_reconnection) {
    return {
      tone: 'warn',
      title: 'The account must be connected again',
      text: 'Its access ends before the post is due, or has already ended. Connect it again and the post goes out as planned.',
      inbox: true,
    };
  }
  if (hold)
    return { tone: 'warn', title: `${platform} is paused`, text: `${sentence(hold.reason)} The post waits.` };
  return null;
}
