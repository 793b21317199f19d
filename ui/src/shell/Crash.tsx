import { Button } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { ProblemNote } from '../parts/ProblemNote';

/** A page that breaks leaves the others usable, and says what happened. */
export class Crash extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <>
        <ProblemNote error={this.state.error} title="This page broke" />
        <Button mt="md" variant="default" onClick={() => window.location.reload()}>
          Load it again
        </Button>
      </>
    );
  }
}
