import { Button } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { ProblemNote } from '../parts/ProblemNote';

/** Shows an error that a page throws. With the address as its `key`, the other pages stay usable. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <>
        <ProblemNote error={this.state.error} title="This page crashed" />
        <Button mt="md" variant="default" onClick={() => window.location.reload()}>
          Reload
        </Button>
      </>
    );
  }
}
